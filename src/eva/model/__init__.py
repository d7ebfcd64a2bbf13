"""The nouns of Eva: frozen values without behaviour that needs a clock, a file or a network.

Everything above this room speaks in these words. Time is integer milliseconds and money integer
micro-dollars, because eight times $3.06 must equal $24.48 exactly: with floats it does not, and
an eight-GPU instance full of one-GPU tasks would be judged not worth its price.
"""
