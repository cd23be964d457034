"""A static site of a store, made from public files alone: pages of releases and of publications."""
