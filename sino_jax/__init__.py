"""Scale-consistent learning for partial differential equations.

A solution restricted to a sub-domain is the solution of the rescaled problem on that sub-domain:
the package is pure functions around that sentence. Importing it has no side effects.
"""

__version__ = "0.1.0"
