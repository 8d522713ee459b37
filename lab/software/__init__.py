"""The lab's software: all that a cluster is made of, made here, without any upstream site.

Programs are built from Go modules, what is left is taken out of Debian's packages. The result is a
directory with files as their projects publish them, images, a catalog that leads kubexm to them,
and a bundle.
"""
