"""Makes failures: hypothesis programs, transforms and guard mutations."""
