"""What a person may write: the strict document, its fields, public domains, exact numbers; canonical JSON.

In: text of YAML or JSON, read without floating point.
Out: models and domains; a refusal names the place, the rule and a way out.
May import: nothing of the pipeline.
"""
