"""How much rounding noise a program makes: shadow runs in float64, Monte-Carlo and declared-dtype arithmetic."""
