"""Campaigns: many runs of real processes under faults, judged by their histories.

Not collected by pytest: `python -m tests.campaign.real` runs one.
"""
