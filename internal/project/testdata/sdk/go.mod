module example.com/Ferry_Operator

go 1.26.0
