"""The tests of Fairbank: the same packages as the product, and stories, faults and golden files."""
