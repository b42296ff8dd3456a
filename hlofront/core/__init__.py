"""The language of programs: values, jaxprs, primitives, rules. The public `hlofront.core`."""
