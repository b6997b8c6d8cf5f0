"""The script that shows a failure, and its proof."""
