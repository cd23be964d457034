"""The whole declaration and its price: the spec, and the plan that follows from it alone.

In: a document.
Out: `Spec`, `Plan`, the canonical plan and its hash. No data are read.
May import: families and below. The last room that both branches share.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "calendar": (
        "LATEST_COMPLETE",
        "amendment_due",
        "check_amendment",
        "first_window",
        "last_ended",
        "latest_complete",
        "moment",
        "resolve_window",
        "window_times",
        "windows_between",
    ),
    "checking": ("LARGEST_PLAN",),
    "column_uses": ("column_uses",),
    "contract_fit": (
        "FAMILIES_OF_TEXTS",
        "LOOSE_KINDS",
        "check_contract",
        "delimited_form",
        "floating_unit_warning",
    ),
    "declared_order": ("DeclaredOrder",),
    "editions": ("AmendedRelease", "MOST_AMENDMENTS", "amended_of", "edition", "read_edition"),
    "expected": ("ExpectPlan", "STATISTIC", "expect_spec", "noisy_count"),
    "person": ("PersonLoss", "epsilon_for_a_year", "loss_of", "of_release", "windows_in_a_year"),
    "plan": ("Plan", "compile_plan", "measures"),
    "recompile": ("CanonicalPlan", "read_canonical_plan"),
    "sampled": ("tables_of",),
    "spec": ("Spec", "load_spec", "require_spec"),
    "terms": ("ALL", "ROW", "Window", "check_window"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
