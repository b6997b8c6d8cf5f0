"""Random programs under nests of transforms."""
