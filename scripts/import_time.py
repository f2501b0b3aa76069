"""Says how long `import celltrain` takes in a fresh interpreter, the best of ten; exits with 1 above the limit.

Run it as: python scripts/import_time.py
"""

from __future__ import annotations

import sys

from celltrain.doctor import IMPORT_TIME_LIMIT_SECONDS, import_seconds


def main() -> None:
    """Measures and prints."""
    seconds = min(import_seconds() for _ in range(10))
    print(f"import celltrain: {seconds:.4f} s, limit {IMPORT_TIME_LIMIT_SECONDS} s")
    sys.exit(seconds > IMPORT_TIME_LIMIT_SECONDS)


if __name__ == "__main__":
    main()
