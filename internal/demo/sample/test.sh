#!/bin/sh
# Runs receipt.sh on known baskets.

failed=0
check() {
	want=$1
	shift
	got=$(sh receipt.sh "$@")
	if [ "$got" = "$want" ]; then
		echo "ok    $* = $got"
	else
		echo "FAIL  $*: got $got, want $want"
		failed=1
	fi
}

check 0
check 1349 250 1000 99
check 9999 9999
check 9000 4000 6000
check 18000 20000
exit $failed
