"""Several releases, or several cells of one, that speak of the same parameters.

``relation`` tells from manifests what two releases have to do with each other, ``conjugate`` adds up
conjugate laws, ``particles`` multiplies mixtures of them; ``releases`` pools, ``roll_up`` merges cells,
``comparison`` tells change from noise.
"""
