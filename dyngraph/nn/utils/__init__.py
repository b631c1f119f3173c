"""What is done with parameters, and with batches of sequences."""

from dyngraph.nn.utils import rnn as rnn
