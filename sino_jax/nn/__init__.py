"""Parts of networks: transforms, mixing, features, activation; functions first, then layers."""
