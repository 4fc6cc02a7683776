"""The DreamGym loop as flows: prepare models, dream and train, evaluate and judge, fine-tune for real."""
