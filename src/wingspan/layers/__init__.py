"""Tensor code that several parts share: the span grid, pooling, LSTMs, the CRF, Transformer blocks, word decoders."""
