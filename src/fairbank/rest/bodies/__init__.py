"""The shapes that travel: what is asked (`requests`) and what is answered (`answers`). Amounts are SU-minutes, always."""
