"""Files that people write: text with its places, forms for what it may say, and what is wrong."""
