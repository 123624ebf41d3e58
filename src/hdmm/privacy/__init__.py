"""Budgets, privacy units, the calibration of noise, its samplers, and the ledger."""
