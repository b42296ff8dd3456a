"""The options that lowered programs are compiled with, for programs of several devices."""

from hlofront.pjrt.backends import create_compile_options as create_compile_options
