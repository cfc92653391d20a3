"""`python -m aelius_math` is the same as `aelius-math`."""

from aelius_math.cli import main

raise SystemExit(main())
