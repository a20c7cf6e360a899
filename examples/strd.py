"""Fit the 27 NIST StRD nonlinear regression problems; the same as ``python -m tenferro strd``.

Each model is a plain NumPy function of its parameters; `tenferro.jacobian` differentiates it, and a
Levenberg-Marquardt solver does the rest. Run it with ``--help`` for its options::

    python examples/strd.py --problem MGH17 --problem Bennett5 --plot fits.png

From Python, `tenferro.strd.run` returns the same results as objects::

    from tenferro.strd import run

    for result in run(["MGH17", "Bennett5"], starts=[2]).results:
        print(result.problem.name, result.parameters, result.deviations)
"""

import sys

from tenferro.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["strd", *sys.argv[1:]]))
