"""What may happen: lifecycles as data, their checks, the library, the drawings and the guards made from them."""
