"""Where the tasks of minimizing, campaigns, sweeps and project runs are done: workers here, or those of a cluster."""
