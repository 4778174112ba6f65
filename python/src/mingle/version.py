"""The version of this package, which is that of the program in the same wheel."""

VERSION = "0.1.0"
