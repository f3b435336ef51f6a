"""Kind of this host's long doubles."""

from __future__ import annotations

import numpy as np

AS_ON_X86_64 = np.finfo(np.longdouble).nmant == 63
"""True if this host computes ties as a slurmctld on x86-64 does."""
