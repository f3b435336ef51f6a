"""The tests of Fairbank: the same rooms as the product, and stories, faults and golden files."""
