"""Networks: a lean transformer, LoRA, packing, precision, sharding, tokenizer."""
