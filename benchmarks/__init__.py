"""Benchmarks: areas for asv (`asv.conf.json`), and `compare.py` against other libraries."""
