"""Inspecting a run: when a flow was in trouble and why, and the network as a figure."""
