"""What Detent costs, as ratios against a floor or against itself without some part: `make bench`."""
