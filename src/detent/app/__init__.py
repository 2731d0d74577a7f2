"""The façade `Detent`: it declares and does, by delegating."""
