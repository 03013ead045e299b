#!/bin/sh
# Prints the total of a basket in cents.

total=0
for price in "$@"; do
	total=$((total + price))
done

# Large baskets get 10 % off.
if [ "$total" -gt 10000 ]; then
	total=$((total * 90 / 100))
fi

echo "$total"
