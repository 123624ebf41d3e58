"""What a workload asks: of one Kronecker product, and of every set of attributes."""
