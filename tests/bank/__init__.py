"""The tests of the money: stories in the field's words, a reference model, and what must hold whatever is asked."""
