"""Runs a program under a chosen schedule: tasks are resumed some turns of the loop later, threads some moments later."""
