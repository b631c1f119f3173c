"""What `gradcheck` is made of: Jacobians, their comparison, and the precision that it needs."""
