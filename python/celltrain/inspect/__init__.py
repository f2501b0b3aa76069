"""Looking into one run: troubled times of a flow, their causes, and the network as a figure."""
