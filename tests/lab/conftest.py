"""Every test below that takes `lab` gets real hosts."""

from lab.testing import lab, lab_network, lab_of_session

__all__ = ["lab", "lab_network", "lab_of_session"]
