"""Fair share: the tree of shares, usage and its decay, Fair Tree and the classic rule."""
