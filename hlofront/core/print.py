"""A jaxpr as text."""


def print_equation(equation, **options):
    names = {}
    return _equation(equation, names)


def print_jaxpr(jaxpr, **options):
    return _jaxpr(jaxpr, {})


def _jaxpr(jaxpr, names):
    def name(v):
        if hasattr(v, "val"):
            return f"{v.val}:{v.aval.str_short(True)}"
        return names.setdefault(v, f"v{len(names)}")

    def typed(v):
        return f"{name(v)}:{v.aval.str_short(True)}"

    lines = ["{ lambda " + " ".join(map(typed, jaxpr.constvars)) + " ; " + " ".join(map(typed, jaxpr.invars)) + ". let"]
    for e in jaxpr.eqns:
        params = {k: (_jaxpr(getattr(v, "jaxpr", v), names) if hasattr(v, "eqns") else v) for k, v in e.params.items()}
        lines.append(f"    {' '.join(map(typed, e.outvars))} = {e.primitive}{params or ''} {' '.join(map(name, e.invars))}")
    lines.append("  in (" + ", ".join(map(name, jaxpr.outvars)) + ") }")
    return "\n".join(lines)


def _equation(e, names):
    return str(e.primitive)
