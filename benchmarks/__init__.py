"""What things cost, as ratios: ours beside a standard-library floor and beside the official SDKs, interleaved in one run."""
