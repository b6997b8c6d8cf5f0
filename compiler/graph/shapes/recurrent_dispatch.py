"""Recurrent networks of several layers with dropout between them, where sizes are dynamic.

torch's rules in Python keep sizes dynamic but drop nothing, and those in C++ drop and fix every size.  So each layer is
a call of its own, which the rules in Python take apart, and between two of them stands the dropout that eager draws.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

# An LSTM is not among them: the rule in C++ asks the number of steps and breaks the graph, where a layer taken apart
# would be compiled for each number of steps.
LAYERED = frozenset({"gru", "rnn_tanh", "rnn_relu"})


def run_in_layers(function: Callable[..., Any], args: Sequence[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output of the last layer, and the last states of all layers, of a padded batch.

    args: input, first states, weights, has_biases, layers, dropout, train, bidirectional, batch_first.
    """
    x, states, weights, has_biases, layers, dropout, train, both_ways, batch_first = args
    ways, count = 2 if both_ways else 1, len(weights) // layers
    output = x.transpose(0, 1) if batch_first else x
    last: list[torch.Tensor] = []
    for layer in range(layers):
        first = states[layer * ways : (layer + 1) * ways]
        of_layer = list(weights[layer * count : (layer + 1) * count])
        output, end = function(output, first, of_layer, has_biases, 1, 0.0, train, both_ways, False)
        last.append(end)
        if layer < layers - 1:
            output = torch.dropout(output, dropout, train)
    return output.transpose(0, 1) if batch_first else output, torch.cat(last)
