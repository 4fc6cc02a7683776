"""Messages in the attributes of spans, by the convention that names the attributes: each module reads what a call was sent and answered."""
