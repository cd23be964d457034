"""The whole declaration and its price: the spec, and the plan that follows from it alone.

In: a document.
Out: `Spec`, `Plan`, the canonical plan and its hash. No data are read.
May import: families and below. The last room that both branches share.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "checking": ("LARGEST_PLAN",),
    "declared_order": ("DeclaredOrder",),
    "plan": ("Plan", "compile_plan", "measures"),
    "recompile": ("CanonicalPlan", "read_canonical_plan"),
    "spec": ("Spec", "load_spec", "require_spec"),
    "terms": ("ALL", "check_window"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
