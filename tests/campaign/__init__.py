"""Campaigns: many runs of real processes under faults, checked by their histories.

Not collected by pytest: `python -m tests.campaign.real` runs one.
"""
