"""Where the tasks of campaigns and sweeps run: workers on this machine, or those of a cluster that exists already."""
