"""State files on real disks, full ones too."""
