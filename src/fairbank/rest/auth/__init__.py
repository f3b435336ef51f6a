"""Who asks: by the kernel's word, by a MUNGE credential or by a token."""
